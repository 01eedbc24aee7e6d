// Every built-in network, by name.
#pragma once

#include <collage/zoo/bert.hpp>
#include <collage/zoo/dcgan.hpp>
#include <collage/zoo/mobilenet_v2.hpp>
#include <collage/zoo/nasnet_a.hpp>
#include <collage/zoo/resnet.hpp>
#include <cstddef>

namespace collage::inline v0::zoo {

/// The name of a built-in network, and a line about it for users.
struct network {
  const char* name;
  const char* about;
};

/// The built-in networks. The Collage paper's come first, in the paper's order.
inline constexpr network networks[] = {
    {"bert-paper", "BERT of the Collage paper: 8 layers, norms in front, hidden size 256, relu, 64 tokens"},
    {"dcgan-paper", "DCGAN of the Collage paper: generator of a 256x256 picture, then discriminator"},
    {"nasnet-a-paper", "NASNet-A of the Collage paper: 3 stages of 5 cells, no stem, no norms"},
    {"resnet50-3d-paper", "3D ResNet-50 of the Collage paper: 3 frames, no stem, no norms, no classifier"},
    {"resnext50-paper", "ResNeXt-50 32x4d of the Collage paper: no stem, no norms, no classifier"},
    {"resnet50", "ResNet-50 on one image of 224x224"},
    {"mobilenet-v2", "MobileNet-V2 on one image of 224x224"},
    {"bert-base-128", "BERT-base encoder on 128 embedded tokens"},
};

/// Builds the network called `name` with `g`. Returns false, and builds nothing, if `networks` has no such name.
template <class Builder>
constexpr bool build(const char* name, Builder& g) {
  using function = void (*)(Builder&);
  constexpr function functions[] = {bert_paper<Builder>,        dcgan_paper<Builder>,     nasnet_a_paper<Builder>,
                                    resnet50_3d_paper<Builder>, resnext50_paper<Builder>, resnet50<Builder>,
                                    mobilenet_v2<Builder>,      bert_base_128<Builder>};
  constexpr std::size_t count = sizeof(networks) / sizeof(networks[0]);
  static_assert(sizeof(functions) / sizeof(functions[0]) == count);
  for (std::size_t i = 0; i < count; ++i) {
    if (!(label(name) == label(networks[i].name))) continue;
    functions[i](g);
    return true;
  }
  return false;
}

}  // namespace collage::inline v0::zoo
