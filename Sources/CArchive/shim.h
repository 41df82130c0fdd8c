#pragma once
// Only for the constants: the library is loaded when it is first needed.
#include <archive.h>
