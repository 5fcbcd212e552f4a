/* SPDX-License-Identifier: Apache-2.0 */
/* python_offsets.c - prints "field offset" for each field of struct stack_python that this version
 * of CPython has, by its internal headers. Compiled by tests with the headers of each interpreter.
 */
#define Py_BUILD_CORE 1
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <Python.h>
#include <frameobject.h>
#include <internal/pycore_runtime.h>
#include <internal/pycore_interp.h>
#include <internal/pycore_pystate.h>
#if PY_MINOR_VERSION >= 11
#include <internal/pycore_frame.h>
#endif
#if PY_MINOR_VERSION >= 14
#include <internal/pycore_interpframe_structs.h>
#endif

#define OFFSET(name, type, field) printf(name " %zu\n", offsetof(type, field))

static void state_bit(const char *name, const PyASCIIObject *s)
{
	unsigned state, bit = 0;

	memcpy(&state, &s->state, sizeof(state));
	while (!(state >> bit & 1))
		bit++;
	printf("%s %u\n", name, bit);
}

static void threads(void)
{
	OFFSET("runtime_interpreters", _PyRuntimeState, interpreters.head);
	OFFSET("interpreter_next", PyInterpreterState, next);
	OFFSET("thread_next", PyThreadState, next);
	OFFSET("thread_interpreter", PyThreadState, interp);
	OFFSET("thread_id", PyThreadState, thread_id);
#if PY_MINOR_VERSION >= 11
	OFFSET("interpreter_threads", PyInterpreterState, threads.head);
	OFFSET("thread_native", PyThreadState, native_thread_id);
#else
	OFFSET("interpreter_threads", PyInterpreterState, tstate_head);
#endif
#if PY_MINOR_VERSION >= 13
	OFFSET("thread_frame", PyThreadState, current_frame);
#elif PY_MINOR_VERSION >= 11
	OFFSET("thread_frame", PyThreadState, cframe);
	OFFSET("cframe_frame", _PyCFrame, current_frame);
#else
	OFFSET("thread_frame", PyThreadState, frame);
#endif
}

static void frames(void)
{
#if PY_MINOR_VERSION >= 13
	OFFSET("frame_code", _PyInterpreterFrame, f_executable);
	OFFSET("frame_back", _PyInterpreterFrame, previous);
	OFFSET("frame_lasti", _PyInterpreterFrame, instr_ptr);
#elif PY_MINOR_VERSION >= 11
	OFFSET("frame_code", _PyInterpreterFrame, f_code);
	OFFSET("frame_back", _PyInterpreterFrame, previous);
	OFFSET("frame_lasti", _PyInterpreterFrame, prev_instr);
#else
	OFFSET("frame_code", PyFrameObject, f_code);
	OFFSET("frame_back", PyFrameObject, f_back);
	OFFSET("frame_lasti", PyFrameObject, f_lasti);
#endif
#if PY_MINOR_VERSION >= 12
	OFFSET("frame_entry", _PyInterpreterFrame, owner);
	printf("owner_c_stack %d\n", FRAME_OWNED_BY_FRAME_OBJECT + 1);
#elif PY_MINOR_VERSION == 11
	OFFSET("frame_entry", _PyInterpreterFrame, is_entry);
#endif
}

static void code(void)
{
	OFFSET("code_file", PyCodeObject, co_filename);
	OFFSET("code_first_line", PyCodeObject, co_firstlineno);
#if PY_MINOR_VERSION >= 11
	OFFSET("code_name", PyCodeObject, co_qualname);
	OFFSET("code_bytes", PyCodeObject, co_code_adaptive);
#else
	OFFSET("code_name", PyCodeObject, co_name);
#endif
#if PY_MINOR_VERSION >= 10
	OFFSET("code_lines", PyCodeObject, co_linetable);
#else
	OFFSET("code_lines", PyCodeObject, co_lnotab);
#endif
}

static void objects(void)
{
	PyASCIIObject s;

	OFFSET("text_length", PyASCIIObject, length);
	OFFSET("text_state", PyASCIIObject, state);
	printf("text_ascii %zu\n", sizeof(PyASCIIObject));
	printf("text_compact %zu\n", sizeof(PyCompactUnicodeObject));
	memset(&s, 0, sizeof(s));
	s.state.kind = 7;
	state_bit("text_kind_shift", &s);
	memset(&s, 0, sizeof(s));
	s.state.compact = 1;
	state_bit("compact_bit", &s);
	memset(&s, 0, sizeof(s));
	s.state.ascii = 1;
	state_bit("ascii_bit", &s);
	OFFSET("bytes_length", PyVarObject, ob_size);
	OFFSET("bytes_data", PyBytesObject, ob_sval);
}

int main(void)
{
	printf("minor %d\n", PY_MINOR_VERSION);
	threads();
	frames();
	code();
	objects();
	return 0;
}
