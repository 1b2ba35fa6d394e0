from diagnostics.text.names import describe_parameters


class TestDescribeParameters:
    def test_a_single_parameter_is_named(self):
        assert describe_parameters({"head.weight": 10}) == "head.weight"

    def test_the_widest_module_without_others_stands_for_its_parameters(self):
        layer = {f"encoder.layer.1.{name}": 9 for name in ("query.weight", "query.bias", "norm.weight")}
        names = describe_parameters({**layer, "mask": 3}, others=["encoder.layer.0.query.weight"])
        assert names == "encoder.layer.1.* (3 parameters) and mask"

    def test_no_more_is_said_than_all_of_them_share(self):
        assert describe_parameters({"encoder.layer.1.a": 1, "encoder.layer.1.b": 1}) == (
            "encoder.layer.1.* (2 parameters)"
        )

    def test_numbers_that_begin_alike_are_not_taken_for_one_module(self):
        assert describe_parameters({"layer.1.w": 2, "layer.10.w": 1}) == "layer.* (2 parameters)"

    def test_keras_paths_are_divided_by_slashes(self):
        names = describe_parameters({"dense/kernel": 4, "dense/bias": 1}, others=["dense_1/bias"])
        assert names == "dense/* (2 parameters)"

    def test_the_largest_five_are_named_and_the_rest_counted(self):
        sizes = {f"layer{i}.weight": i for i in range(1, 8)} | {"layer1.bias": 0}
        assert describe_parameters(sizes) == (
            "layer7.weight, layer6.weight, layer5.weight, layer4.weight, layer3.weight and 3 more"
        )
