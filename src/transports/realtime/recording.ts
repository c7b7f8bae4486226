import { base64, bytesIn } from '../../protocol/base64.ts'
import { joinedBytes } from '../../protocol/bytes.ts'

/** Characters of base64 that are kept of what an agent says in one answer. The rest of it is heard, and not remembered. */
const MAX_SIZE = 8 * 1024 * 1024

/** What an agent says, put together from its pieces. */
export class Recording {
  #pieces: string[] = []
  #room = MAX_SIZE

  add(piece: string): void {
    // Once something did not fit nothing does: a recording with a hole would be another one.
    this.#room = piece.length > this.#room ? 0 : this.#room - piece.length
    if (this.#room > 0) this.#pieces.push(piece)
  }

  /** In base64. Texts of it can be put together as they are unless one but the last is padded. */
  whole(): string {
    if (this.#pieces.slice(0, -1).every((piece) => !piece.endsWith('='))) return this.#pieces.join('')
    return base64(joinedBytes(this.#pieces.map((piece) => bytesIn(piece) ?? new Uint8Array())))
  }
}
