/** pcm16 is little-endian, whatever the machine is. */
export function toSamples(bytes: Uint8Array): Int16Array {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const samples = new Int16Array(bytes.length >> 1)
  for (let index = 0; index < samples.length; index++) samples[index] = view.getInt16(index * 2, true)
  return samples
}

export function toBytes(samples: Int16Array): Uint8Array {
  const view = new DataView(new ArrayBuffer(samples.length * 2))
  for (let index = 0; index < samples.length; index++) view.setInt16(index * 2, samples[index] as number, true)
  return new Uint8Array(view.buffer)
}
