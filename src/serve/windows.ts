import { join } from 'node:path'

/** Windows of IDEs that keep sessions at a time, with one data folder. */
export const WINDOWS = 8

/** The data folder, and those in it for the second window and further ones. */
export function windowsOf(data: string): readonly [string, ...string[]] {
  return [data, ...Array.from({ length: WINDOWS - 1 }, (_, at) => join(data, 'windows', String(at + 2)))]
}
