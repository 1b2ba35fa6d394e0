# What a check evaluates: the model of the last rate, since the solution evaluates each in its `fit`.
loss, accuracy = model.evaluate(*validation, verbose=0)
print(f"eval_accuracy={accuracy:.3f}")
