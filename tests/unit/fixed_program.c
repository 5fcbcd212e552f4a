/* SPDX-License-Identifier: Apache-2.0 */
/* fixed_program.c - a program linked to a fixed address, which test_image.c reads. */
int main(void)
{
	return 0;
}
