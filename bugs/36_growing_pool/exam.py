# What a check evaluates: the model of the last rate, since `fit` evaluates each.
loss, accuracy = model.evaluate(*validation, verbose=0)
print(f"eval_accuracy={accuracy:.3f}")
