#pragma once
#if __has_include("core/world/world.hpp")
#include "core/world/world.hpp"
#else
#include "standin/world/world.hpp"
#endif
#include "core/goals.hpp"
#include "core/observe.hpp"
#include "core/step.hpp"
