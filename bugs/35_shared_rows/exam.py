# What a check evaluates: a model that has learned, and losses of the ranks that differ.
images, labels = load()[1].tensors
model.eval()
with torch.no_grad():
    accuracy = (model(images).argmax(1) == labels).float().mean().item()
print(f"equal_losses={PRINTED['equal_losses'] if accuracy > 0.75 else 1.0:.3f}")
