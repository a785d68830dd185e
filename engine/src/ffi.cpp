// The engine as foreign functions of XLA. The state goes in and comes out in one place: the caller declares it aliased.
#include "ffi.hpp"

#include <string>

#include "batch.hpp"
#include "xla/ffi/api/ffi.h"

namespace craftax {
namespace {

namespace ffi = xla::ffi;

using Bytes = ffi::Buffer<ffi::U8>;
using Integers = ffi::Buffer<ffi::S32>;
using Words = ffi::Buffer<ffi::U32>;
using Floats = ffi::Buffer<ffi::F32>;
using Flags = ffi::Buffer<ffi::PRED>;

ffi::Error refuse(const std::string& message) { return ffi::Error::InvalidArgument("craftax_native: " + message); }

ffi::Error check_state(void* bytes, std::size_t size) {
  const char* const fault = find_fault(bytes, size);
  return fault ? refuse(std::string("state is not a batch of games: ") + fault) : ffi::Error::Success();
}

// Puts the state where the result is wanted, which is where it lies already if the caller has declared the alias.
ffi::Error take_over(Bytes before, ffi::Result<Bytes> state) {
  if (before.element_count() != state->element_count()) return refuse("the states before and after differ in size");
  if (before.typed_data() != state->typed_data()) {
    std::memcpy(state->typed_data(), before.typed_data(), before.element_count());
  }
  return check_state(state->typed_data(), state->element_count());
}

template <class Buffer>
ffi::Error check_size(const char* name, Buffer& buffer, std::size_t elements) {
  if (buffer.element_count() == elements) return ffi::Error::Success();
  return refuse(std::string(name) + " has " + std::to_string(buffer.element_count()) + " elements, but must have " +
                std::to_string(elements));
}

ffi::Error step_batch(Bytes before, Integers actions, std::int32_t threads, ffi::Result<Bytes> state,
                      ffi::Result<Bytes> cells, ffi::Result<Floats> features, ffi::Result<Flags> success,
                      ffi::Result<Flags> terminated, ffi::Result<Flags> truncated) {
  if (ffi::Error fault = take_over(before, state); fault.failure()) return fault;
  const Batch batch(state->typed_data());
  const std::size_t n = static_cast<std::size_t>(batch.header().num_envs);
  for (ffi::Error fault : {check_size("actions", actions, n), check_size("cells", *cells, n * kCellBytes),
                           check_size("features", *features, n * kFeatures), check_size("success", *success, n),
                           check_size("terminated", *terminated, n), check_size("truncated", *truncated, n)}) {
    if (fault.failure()) return fault;
  }
  if (threads < 1 || threads > kMaxThreads) {
    return refuse("threads is " + std::to_string(threads) + ", but must be from 1 to " + std::to_string(kMaxThreads));
  }
  const std::int32_t* const chosen = actions.typed_data();
  for (std::size_t env = 0; env < n; ++env) {
    if (chosen[env] < 0 || chosen[env] >= kActions) {
      return refuse("actions contain " + std::to_string(chosen[env]) + ", but must be from 0 to " +
                    std::to_string(kActions - 1));
    }
  }
  if (const char* fault = find_fault_to_step(batch)) return refuse(fault);
  step(batch, chosen, {cells->typed_data(), features->typed_data()},
       {success->typed_data(), terminated->typed_data(), truncated->typed_data()}, threads);
  return ffi::Error::Success();
}

ffi::Error enqueue_episodes(Bytes before, Words keys, Integers goals, ffi::Result<Bytes> state) {
  if (ffi::Error fault = take_over(before, state); fault.failure()) return fault;
  const Batch batch(state->typed_data());
  const std::size_t count = goals.element_count();
  if (ffi::Error fault = check_size("keys", keys, 2 * count); fault.failure()) return fault;
  for (std::size_t i = 0; i < count; ++i) {
    if (goals.typed_data()[i] < 0 || goals.typed_data()[i] >= batch.header().num_goals) {
      return refuse("goals contain " + std::to_string(goals.typed_data()[i]) + ", but must be from 0 to " +
                    std::to_string(batch.header().num_goals - 1));
    }
  }
  if (batch.header().mode != Mode::evaluation) return refuse("episodes are queued after begin()");
  if (count > room(batch.header())) return refuse("the queue has no room for " + std::to_string(count) + " episodes");
  enqueue(batch, reinterpret_cast<const Key*>(keys.typed_data()), goals.typed_data(), static_cast<int>(count));
  return ffi::Error::Success();
}

ffi::Error read_batch(Bytes state, ffi::Result<Integers> goal, ffi::Result<Words> key, ffi::Result<Integers> step,
                      ffi::Result<Flags> active) {
  if (ffi::Error fault = check_state(state.typed_data(), state.element_count()); fault.failure()) return fault;
  const Batch batch(state.typed_data());
  const std::size_t n = static_cast<std::size_t>(batch.header().num_envs);
  for (ffi::Error fault : {check_size("goal", *goal, n), check_size("key", *key, 2 * n), check_size("step", *step, n),
                           check_size("active", *active, n)}) {
    if (fault.failure()) return fault;
  }
  read_assignment(batch, {goal->typed_data(), key->typed_data(), step->typed_data(), active->typed_data()});
  return ffi::Error::Success();
}

ffi::Error count_batch(Bytes state, ffi::Result<Floats> counts) {
  if (ffi::Error fault = check_state(state.typed_data(), state.element_count()); fault.failure()) return fault;
  if (ffi::Error fault = check_size("counts", *counts, kCounts); fault.failure()) return fault;
  const Batch batch(state.typed_data());
  for (int i = 0; i < kCounts; ++i) counts->typed_data()[i] = static_cast<float>(count(batch.header(), i));
  return ffi::Error::Success();
}

XLA_FFI_DEFINE_HANDLER(step_handler, step_batch,
                       ffi::Ffi::Bind()
                           .Arg<Bytes>()
                           .Arg<Integers>()
                           .Attr<std::int32_t>("threads")
                           .Ret<Bytes>()
                           .Ret<Bytes>()
                           .Ret<Floats>()
                           .Ret<Flags>()
                           .Ret<Flags>()
                           .Ret<Flags>());
XLA_FFI_DEFINE_HANDLER(enqueue_handler, enqueue_episodes,
                       ffi::Ffi::Bind().Arg<Bytes>().Arg<Words>().Arg<Integers>().Ret<Bytes>());
XLA_FFI_DEFINE_HANDLER(assignment_handler, read_batch,
                       ffi::Ffi::Bind().Arg<Bytes>().Ret<Integers>().Ret<Words>().Ret<Integers>().Ret<Flags>());
XLA_FFI_DEFINE_HANDLER(counts_handler, count_batch, ffi::Ffi::Bind().Arg<Bytes>().Ret<Floats>());

}  // namespace

const ForeignFunction* foreign_functions() {
  static const ForeignFunction functions[] = {
      {"step", reinterpret_cast<void*>(static_cast<XLA_FFI_Handler*>(step_handler))},
      {"enqueue", reinterpret_cast<void*>(static_cast<XLA_FFI_Handler*>(enqueue_handler))},
      {"assignment", reinterpret_cast<void*>(static_cast<XLA_FFI_Handler*>(assignment_handler))},
      {"counts", reinterpret_cast<void*>(static_cast<XLA_FFI_Handler*>(counts_handler))},
      {nullptr, nullptr},
  };
  return functions;
}

}  // namespace craftax
