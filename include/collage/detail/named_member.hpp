// Whether a class has a member of some name, whatever the member is: a type, a template, or a function of any form.
#pragma once

namespace collage::inline v0::detail {

/// `Named` is a struct with a member of the name in question. The name is ambiguous in this class if B has it as well. So B has no
/// such member if `&beside<B, Named>::name` is valid. This does not serve final classes.
template <class B, class Named>
struct beside : B, Named {};

}  // namespace collage::inline v0::detail
