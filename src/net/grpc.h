/* SPDX-License-Identifier: Apache-2.0 */
/* grpc.h - what gRPC puts around a message and into fields. No I/O. */
#pragma once

#include "base/buf.h"
#include "base/errinfo.h"

#define GRPC_FRAME       5 /* bytes before a message: compressed or not, length */
#define GRPC_TIMEOUT_MAX 16
#define GRPC_MESSAGE_MAX 1024 /* of an error's text; the rest is cut */

enum { /* gRPC's status codes that are made here */
	GRPC_OK = 0,
	GRPC_UNKNOWN = 2,
	GRPC_INVALID_ARGUMENT = 3,
	GRPC_DEADLINE_EXCEEDED = 4,
	GRPC_ALREADY_EXISTS = 6,
	GRPC_PERMISSION_DENIED = 7,
	GRPC_RESOURCE_EXHAUSTED = 8,
	GRPC_UNIMPLEMENTED = 12,
	GRPC_INTERNAL = 13,
	GRPC_UNAVAILABLE = 14,
	GRPC_UNAUTHENTICATED = 16,
};

void grpc_frame(unsigned char out[GRPC_FRAME], size_t len, bool gzip);
size_t grpc_frame_len(const unsigned char frame[GRPC_FRAME]); /* of the message behind it */

/* grpc_is_type - whether @type is one of gRPC's content types: "application/grpc+proto". */
bool grpc_is_type(const char *type, size_t len);

/* grpc_unframe - finds the one message in @data. 0, or -EPROTO with what is wrong with it (without
 * the place): none, two, cut short, or compressed, which was not asked for. */
int grpc_unframe(
	const char *data, size_t len, const char **ret, size_t *ret_len, const char **ret_fault);

/* grpc_timeout - "4954m": @ns in at most eight digits and a unit, rounded down but never to 0. */
const char *grpc_timeout(char out[GRPC_TIMEOUT_MAX], uint64_t ns);

/* grpc_status_parse - of the field grpc-status; what is no number is GRPC_UNKNOWN. */
int grpc_status_parse(const char *s, size_t len);

/* grpc_message_decode - the field grpc-message with its %XX undone, cut to @size - 1 bytes. What is
 * badly written stays as it is; a NUL becomes '?'. */
void grpc_message_decode(const char *s, size_t len, char *out, size_t size);

/* grpc_message_encode - appends @s as the field grpc-message has it: what is not a printable character
 * of ASCII as %XX. Cut, between characters, at the buffer's ceiling. */
void grpc_message_encode(struct buf *b, const char *s);

/* grpc_retry_encode - appends the field grpc-status-details-bin: google.rpc.Status with RetryInfo, in
 * base64. OTLP's exporters repeat RESOURCE_EXHAUSTED only with it. */
void grpc_retry_encode(struct buf *b, int status, const char *message, uint64_t delay_s);

/* grpc_status_of_http - what gRPC makes of a reply that has a status of HTTP only. */
int grpc_status_of_http(int http_status);

/* grpc_status_for_http - what a server of gRPC says where one of HTTP says @http_status: it knows more
 * than a client that hears the number of some proxy. */
int grpc_status_for_http(int http_status);
