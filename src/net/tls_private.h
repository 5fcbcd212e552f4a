/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "net/tls.h"
#define tls_demands_client(t) (false)
