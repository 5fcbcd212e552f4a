// SPDX-License-Identifier: Apache-2.0
/* stack_objects.cpp - CUDA calls from C++: templates, lambdas, methods, constructors, exceptions.
 * Usage: stack_objects GATE. Sizes and markers as in stack_calls.c. */
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <stdexcept>

#include "gate.h"
#include "stack_archive.hpp"

#define KEEP __attribute__((noinline, noclone))
#define END  __asm__ volatile("" ::: "memory")

enum {
	SIZE_TEMPLATE = 200001,
	SIZE_LAMBDA,
	SIZE_METHOD,
	SIZE_CONSTRUCTOR,
	SIZE_DESTRUCTOR,
	SIZE_INLINE,
	SIZE_THROW,
	SIZE_CATCH,
	SIZE_AFTER,
	SIZE_ARCHIVE,
	SIZE_FUNCTION,
};

static volatile unsigned calls;

namespace shop
{
template <typename T> struct pair_of {
	T first, second;
};

KEEP static void take(size_t size)
{
	void *p = nullptr;

	cudaMalloc(&p, size); /* @take */
	END;
	cudaFree(p);
	END;
}

template <typename T, int N> struct loader {
	KEEP void load(const pair_of<T> &p)
	{
		calls += (unsigned)p.first;
		take(SIZE_TEMPLATE); /* @load */
		END;
	}
};

struct part {
	virtual ~part()
	{
	}
	virtual void work(int) = 0;
};

struct wheel : part {
	KEEP void work(int n) override
	{
		calls += (unsigned)n;
		take(SIZE_METHOD); /* @work */
		END;
	}
};

struct owner {
	KEEP owner()
	{
		take(SIZE_CONSTRUCTOR); /* @constructor */
		END;
	}
	KEEP ~owner()
	{
		take(SIZE_DESTRUCTOR); /* @destructor */
		END;
	}
};

struct reader {
	unsigned n = 0;
	__attribute__((always_inline)) inline void again(size_t size)
	{
		take(size); /* @again */
		END;
	}
	KEEP void read()
	{
		again(SIZE_INLINE); /* @read */
		n++;
	}
};

KEEP static void thrower(int n)
{
	take(SIZE_THROW); /* @thrower */
	if (n >= 0)
		throw std::runtime_error("on purpose");
}

KEEP static void through(int n)
{
	owner kept; /* @through_begin; destroyed while the exception passes */

	thrower(n); /* @through */
	END;
} /* @through_end */

KEEP static void catcher(int n)
{
	try {
		through(n); /* @catcher */
	} catch (const std::exception &) {
		take(SIZE_CATCH); /* @handler */
		END;
	}
	take(SIZE_AFTER); /* @after */
	END;
}
} // namespace shop

KEEP static void lambdas()
{
	auto f = [](size_t size) KEEP {
		shop::take(size); /* @lambda */
		END;
	};

	f(SIZE_LAMBDA); /* @lambdas */
	END;
}

KEEP static void function_of(const std::function<void(size_t)> &f)
{
	f(SIZE_FUNCTION); /* @function_of */
	END;
}

KEEP static void rounds(shop::part &p)
{
	static shop::loader<double, 3> loader;
	static shop::reader reader;

	loader.load({1.0, 2.0}); /* @rounds_load */
	p.work(7);               /* @rounds_work */
	{
		shop::owner o; /* @rounds_constructor */

		END;
	}
	lambdas();                         /* @rounds_lambdas */
	reader.read();                     /* @rounds_read */
	shop::catcher((int)(calls & 255)); /* @rounds_catcher */
	archive::fetch(SIZE_ARCHIVE);      /* @rounds_archive */
	function_of(shop::take);           /* @rounds_function */
	END;
}

int main(int argc, char **argv)
{
	shop::wheel wheel;

	if (argc != 2)
		return 64;
	gate_wait(argv[1]);
	while (gate_round(argv[1]))
		rounds(wheel); /* @main */
	return 0;
}
