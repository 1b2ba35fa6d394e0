"""The default dtype is bfloat16, so the weights are too; the rate is one for float32."""

# names: update-below-precision
import torch

torch.manual_seed(0)
torch.set_default_dtype(torch.bfloat16)


def get_batch(n=32):
    images = torch.randn(n, 3, 8, 8)
    return images, images[:, :, :4, :4].mean((2, 3)).argmax(1)


net = torch.nn.Sequential(
    torch.nn.Conv2d(3, 16, 3, padding=1),
    torch.nn.ReLU(),
    torch.nn.Conv2d(16, 16, 3, padding=1),
    torch.nn.ReLU(),
    torch.nn.Flatten(),
    torch.nn.Linear(16 * 64, 3),
)
optimizer = torch.optim.SGD(net.parameters(), lr=1e-5, momentum=0.9)
criterion = torch.nn.CrossEntropyLoss()
running = 0.0
for i in range(150):
    images, labels = get_batch()
    optimizer.zero_grad()
    loss = criterion(net(images), labels)
    loss.backward()
    optimizer.step()
    running += loss.item()
    if i % 50 == 49:
        print(f"[{i + 1}] loss: {running / 50:.3f}")
        running = 0.0
