/* SPDX-License-Identifier: Apache-2.0 */
/* nvml_bare.c - a library with the four functions of NVML that the agent cannot do without and one
 * more: what a driver of another age may look like. */
int nvmlInit_v2(void);
int nvmlDeviceGetCount_v2(unsigned *count);
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device);
int nvmlDeviceGetTemperature(void *device, int sensor, unsigned *ret);

int nvmlInit_v2(void)
{
	return 0;
}

int nvmlDeviceGetCount_v2(unsigned *count)
{
	*count = 2;
	return 0;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device)
{
	static char devices[2];

	if (index == 1)
		return 15; /* lost */
	*device = &devices[index];
	return 0;
}

int nvmlDeviceGetTemperature(void *device, int sensor, unsigned *ret)
{
	*ret = 44;
	return 0;
}
