// The functions that XLA may call.
#pragma once

namespace craftax {

struct ForeignFunction {
  const char* name;
  void* address;
};

// A list that ends with a null name.
const ForeignFunction* foreign_functions();

}  // namespace craftax
