// Models that tests run in a session.
#pragma once

#include <collage/io/onnx/model_source.hpp>
#include <collage/run/session.hpp>

#include <gtest/gtest.h>

#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "support/messages.hpp"
#include "support/sessions.hpp"
#include "writer.hpp"

namespace collage_test {

/// A session over a model, and its runs.
struct running {
  explicit running(const proto::ModelProto& model, const collage::session_options& options = {},
                   const collage::onnx::load_options& load = {})
      : source(std::make_shared<const collage::onnx::model_source>(folder.write(model), load)),
        session(unmeasured_session(source, options)),
        context(session.context()) {}

  std::span<const collage::session_output> operator()(std::initializer_list<collage::const_tensor_view> inputs) {
    return context.run(inputs);
  }
  std::string refusal(std::initializer_list<collage::const_tensor_view> inputs) {
    return message_of([&] { (void)context.run(inputs); }, 2);
  }

  model_folder folder;
  std::shared_ptr<const collage::onnx::model_source> source;
  collage::session session;
  collage::session_context context;
};

template <class T>
std::vector<T> list_of(const collage::session_output& o) {
  EXPECT_EQ(o.contents.type.type, collage::dtype_of<T>);
  const auto all = o.contents.as<T>();
  return {all.begin(), all.end()};
}

}  // namespace collage_test
