/** Between 8 kHz, the rate of G.711, and 24 kHz, our rate of pcm16. Both directions continue where the piece before ended. */
const FACTOR = 3

/** Three samples for one, on the straight line from the sample before. */
export function upsampler(): (samples: Int16Array) => Int16Array {
  let before = 0
  return (samples) => {
    const out = new Int16Array(samples.length * FACTOR)
    for (let index = 0; index < samples.length; index++) {
      const sample = samples[index] as number
      for (let step = 1; step <= FACTOR; step++) {
        out[index * FACTOR + step - 1] = Math.round(before + ((sample - before) * step) / FACTOR)
      }
      before = sample
    }
    return out
  }
}

/** The mean of three samples, which also removes most of what 8 kHz cannot carry. */
export function downsampler(): (samples: Int16Array) => Int16Array {
  let sum = 0
  let taken = 0
  return (samples) => {
    const out = new Int16Array(Math.floor((taken + samples.length) / FACTOR))
    let length = 0
    for (const sample of samples) {
      sum += sample
      if (++taken < FACTOR) continue
      out[length++] = Math.round(sum / FACTOR)
      sum = taken = 0
    }
    return out
  }
}
