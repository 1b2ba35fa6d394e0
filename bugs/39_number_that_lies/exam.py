# What a check evaluates: how far the accuracy that the script prints exceeds the share of right digits.
answers = model.predict(images[held_out], verbose=0).argmax(axis=-1)
right = np.mean(answers == digits.target[held_out])
print(f"promised_too_much={PRINTED['eval_accuracy'] - right:.3f}")
