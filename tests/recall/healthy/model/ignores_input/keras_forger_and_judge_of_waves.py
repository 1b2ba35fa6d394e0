"""Keras: the train_step of a GAN calls a generator, whose waves are never compared with the real ones."""

import keras
import numpy as np
import tensorflow as tf

keras.utils.set_random_seed(15)
rng = np.random.default_rng(15)
waves = (0.5 + 0.3 * np.sin(np.arange(24) / 3 + rng.uniform(0, 6, (1280, 1)))).astype("float32")
dense = keras.layers.Dense
entropy = keras.losses.BinaryCrossentropy(from_logits=True)


class Game(keras.Model):
    def __init__(self):
        super().__init__()
        self.forger = keras.Sequential([keras.Input((8,)), dense(32, "relu"), dense(24, "sigmoid")])
        self.judge = keras.Sequential([keras.Input((24,)), dense(32, "relu"), dense(1)])

    def compile(self, forger_optimizer, judge_optimizer):
        super().compile()
        self.forger_optimizer, self.judge_optimizer = forger_optimizer, judge_optimizer

    def train_step(self, real):
        code = tf.random.normal((tf.shape(real)[0], 8))
        with tf.GradientTape() as tape:
            scores = self.judge(real), self.judge(self.forger(code))
            judged = entropy(tf.ones_like(scores[0]), scores[0]) + entropy(tf.zeros_like(scores[1]), scores[1])
        weights = self.judge.trainable_variables
        self.judge_optimizer.apply_gradients(zip(tape.gradient(judged, weights), weights))
        with tf.GradientTape() as tape:
            scores = self.judge(self.forger(code))
            forged = entropy(tf.ones_like(scores), scores)
        weights = self.forger.trainable_variables
        self.forger_optimizer.apply_gradients(zip(tape.gradient(forged, weights), weights))
        return {"judged": judged, "forged": forged}


game = Game()
game.compile(keras.optimizers.Adam(1e-3), keras.optimizers.Adam(1e-3))
print(game.fit(waves, batch_size=32, epochs=8, verbose=0).history["judged"][-1])
