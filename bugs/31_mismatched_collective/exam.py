# What a check evaluates: the accuracy of rank 0's model on all validation images.
images, labels = load()[1].tensors
model.eval()
with torch.no_grad():
    accuracy = (model(images).argmax(1) == labels).float().mean().item()
print(f"eval_accuracy={accuracy:.3f}")
