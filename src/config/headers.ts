import type { Path } from './source.ts'
import type { Problems } from './problems.ts'

/** Reports names and values that no request can carry. */
export function checkHeaders(headers: Readonly<Record<string, string>>, path: Path, problems: Problems): void {
  for (const [name, value] of Object.entries(headers)) {
    try {
      new Headers([[name, value]])
    } catch {
      problems.add(
        [...path, name],
        'cannot be a header: a name has letters, digits and dashes, and a value is one line of plain characters',
      )
    }
  }
}
