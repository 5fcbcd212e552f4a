/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* hook.h - what a place is at which the program mark_hit runs: its attach cookie. Freestanding, for
 * both halves. */
#pragma once

enum mark_hook { /* the cookie's lowest byte */
	HOOK_NONE,
	HOOK_NAMED, /* a range of PyTorch's profiler begins; its name says what */
	HOOK_BACKWARD,
	HOOK_EXECUTE, /* JAX starts what it has compiled */
	HOOK_COLLECT_BEGIN,
	HOOK_COLLECT_END,
	HOOK_REGISTER, /* a kernel and the function that launches it */
	HOOK_HANDLE,   /* (out, module, name): a handle of a kernel by its name */
	HOOK_ALIAS,    /* (out, handle): another handle of the same kernel */
	HOOK_HANDLE_END,
	HOOK_NVTX, /* from here on NVTX's: see HOOK_NVTX_COOKIE */
	HOOK_NVTX_PUSH = HOOK_NVTX,
	HOOK_NVTX_POP,
	HOOK_NVTX_START,
	HOOK_NVTX_STARTED, /* return of the former */
	HOOK_NVTX_END,
	HOOK_NVTX_MARK,
	HOOK_NVTX_NAME,  /* a domain or string gets a handle */
	HOOK_NVTX_NAMED, /* return of the former */
};

/* How the text of a range is given; the numbers from 1 to 3 are NVTX's own kinds of messages. */
enum nvtx_form {
	NVTX_FORM_NONE,
	NVTX_FORM_TEXT,
	NVTX_FORM_WIDE,
	NVTX_FORM_REGISTERED,
	NVTX_FORM_ATTRIBUTES,
};

/* The upper bytes of an NVTX hook's cookie: the form, which argument holds it, and whether the first
 * is a domain. */
#define HOOK_NVTX_DETAIL(form, argument, domain) ((form) | (argument) << 8 | (domain) << 16)
