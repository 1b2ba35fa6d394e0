# What a check evaluates: the loss on every row as it was read, with other words blanked than ever before.
print(f"train_loss={trainer.evaluate(train)['eval_loss']:.3f}")
