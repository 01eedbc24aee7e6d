// The built-in networks as static graphs, from the same functions: `zoo::statics::resnet50::graph.view()`.
#pragma once

#include <collage/graph/define.hpp>
#include <collage/zoo/bert.hpp>
#include <collage/zoo/dcgan.hpp>
#include <collage/zoo/mobilenet_v2.hpp>
#include <collage/zoo/nasnet_a.hpp>
#include <collage/zoo/resnet.hpp>

namespace collage::inline v0::zoo::statics {

// Templates, so that a network is evaluated where it is named and not where this header is included.
namespace detail {

template <class = void>
struct bert_paper {
  static constexpr auto graph = define([](auto& g) { zoo::bert_paper(g); });
};
template <class = void>
struct dcgan_paper {
  static constexpr auto graph = define([](auto& g) { zoo::dcgan_paper(g); });
};
template <class = void>
struct nasnet_a_paper {
  static constexpr auto graph = define([](auto& g) { zoo::nasnet_a_paper(g); });
};
template <class = void>
struct resnet50_3d_paper {
  static constexpr auto graph = define([](auto& g) { zoo::resnet50_3d_paper(g); });
};
template <class = void>
struct resnext50_paper {
  static constexpr auto graph = define([](auto& g) { zoo::resnext50_paper(g); });
};
template <class = void>
struct resnet50 {
  static constexpr auto graph = define([](auto& g) { zoo::resnet50(g); });
};
template <class = void>
struct mobilenet_v2 {
  static constexpr auto graph = define([](auto& g) { zoo::mobilenet_v2(g); });
};
template <class = void>
struct bert_base_128 {
  static constexpr auto graph = define([](auto& g) { zoo::bert_base_128(g); });
};

}  // namespace detail

using bert_paper = detail::bert_paper<>;
using dcgan_paper = detail::dcgan_paper<>;
using nasnet_a_paper = detail::nasnet_a_paper<>;
using resnet50_3d_paper = detail::resnet50_3d_paper<>;
using resnext50_paper = detail::resnext50_paper<>;
using resnet50 = detail::resnet50<>;
using mobilenet_v2 = detail::mobilenet_v2<>;
using bert_base_128 = detail::bert_base_128<>;

}  // namespace collage::inline v0::zoo::statics
