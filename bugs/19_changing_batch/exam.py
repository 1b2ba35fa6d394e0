# What a check evaluates: the loss on every row, with other words blanked than before.
print(f"train_loss={trainer.evaluate(train)['eval_loss']:.3f}")
