import type { Editor } from './editor.ts'

/** As `node:readline` tells them. */
export interface Key {
  readonly name?: string | undefined
  readonly sequence?: string | undefined
  readonly ctrl?: boolean
  readonly meta?: boolean
  readonly shift?: boolean
}

/** What a key asks for beside a change of the text. */
export type Wish = 'submit' | 'interrupt' | 'leave' | 'older' | 'newer' | 'search' | 'complete' | 'redraw' | 'suspend'

const CTRL: Readonly<Record<string, (editor: Editor) => Wish | void>> = {
  a: (editor) => editor.home(),
  b: (editor) => editor.left(),
  c: () => 'interrupt',
  d: (editor) => (editor.text === '' ? 'leave' : editor.delete()),
  e: (editor) => editor.end(),
  f: (editor) => editor.right(),
  h: (editor) => editor.backspace(),
  k: (editor) => editor.killEnd(),
  l: () => 'redraw',
  n: (editor) => (editor.down() ? undefined : 'newer'),
  p: (editor) => (editor.up() ? undefined : 'older'),
  r: () => 'search',
  t: (editor) => editor.transpose(),
  u: (editor) => editor.killStart(),
  w: (editor) => editor.killBack(),
  y: (editor) => editor.yank(),
  z: () => 'suspend',
  left: (editor) => editor.wordLeft(),
  right: (editor) => editor.wordRight(),
}

const META: Readonly<Record<string, (editor: Editor) => Wish | void>> = {
  b: (editor) => editor.wordLeft(),
  f: (editor) => editor.wordRight(),
  d: (editor) => editor.killWordRight(),
  left: (editor) => editor.wordLeft(),
  right: (editor) => editor.wordRight(),
  backspace: (editor) => editor.killWordLeft(),
  return: (editor) => editor.insert('\n'),
  enter: (editor) => editor.insert('\n'),
}

const PLAIN: Readonly<Record<string, (editor: Editor) => Wish | void>> = {
  return: (editor) => (editor.isOpen ? editor.insert('\n') : 'submit'),
  // Ctrl-J.
  enter: (editor) => editor.insert('\n'),
  backspace: (editor) => editor.backspace(),
  delete: (editor) => editor.delete(),
  left: (editor) => editor.left(),
  right: (editor) => editor.right(),
  home: (editor) => editor.home(),
  end: (editor) => editor.end(),
  up: (editor) => (editor.up() ? undefined : 'older'),
  down: (editor) => (editor.down() ? undefined : 'newer'),
  tab: () => 'complete',
}

/** Shift-Enter and Alt-Enter of terminals that tell them apart. */
const NEW_LINE = new Set(['\u001B[13;2u', '\u001B[13;3u', '\u001B[13;5u', '\u001B[27;2;13~'])
const UNDO = '\u001F'
const CONTROL = /\p{Cc}/u

/** Applies a key to the text. */
export function apply(editor: Editor, key: Key): Wish | void {
  const { name = '', sequence = '' } = key
  if (NEW_LINE.has(sequence)) return editor.insert('\n')
  if (sequence === UNDO) return editor.undo()
  const table = key.ctrl ? CTRL : key.meta ? META : PLAIN
  const action = Object.hasOwn(table, name) ? table[name] : undefined
  if (action) return action(editor)
  if (!key.ctrl && !key.meta && sequence !== '' && !CONTROL.test(sequence)) editor.insert(sequence)
}
