# SPDX-License-Identifier: Apache-2.0
"""job_gan.py - nothing wrong: two networks and two optimizers, four steps of the critic for one of the
generator, the only one that is waited for."""
import torch
from job_clock import Clock


def mlp(*dims):
    return torch.nn.Sequential(*[m for a, b in zip(dims, dims[1:])
                                 for m in (torch.nn.Linear(a, b), torch.nn.LeakyReLU(0.2))])


def main():
    clock, n = Clock(), 0
    z, h, batch = clock.size((256, 3072, 1024), (16, 64, 16))
    gen, critic = mlp(z, h, h, h, h).to(clock.device), mlp(h, h, h, 1).to(clock.device)
    og, oc = (torch.optim.RMSprop(net.parameters(), lr=5e-5) for net in (gen, critic))
    real = torch.randn(batch, h, device=clock.device)
    clock.begin()
    while not clock.over():
        n += 1
        fake = gen(torch.randn(batch, z, device=clock.device))
        if n % 5:
            loss, opt = critic(fake.detach()).mean() - critic(real).mean(), oc
        else:
            loss, opt = -critic(fake).mean(), og
        opt.zero_grad()
        loss.backward()
        opt.step()
        if not n % 5:
            loss.item()
        clock.tick()
    clock.end()


main()
