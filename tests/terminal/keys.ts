/** What a terminal sends for a key, as xterm does without any protocol of newer ones. */
const keys = {
  enter: '\r',
  'alt-enter': '\u001b\r',
  escape: '\u001b',
  tab: '\t',
  'shift-tab': '\u001b[Z',
  backspace: '\u007f',
  delete: '\u001b[3~',
  up: '\u001b[A',
  down: '\u001b[B',
  right: '\u001b[C',
  left: '\u001b[D',
  home: '\u001b[H',
  end: '\u001b[F',
  'page-up': '\u001b[5~',
  'page-down': '\u001b[6~',
} as const

export type Key = keyof typeof keys | `ctrl-${string}`

export function bytesOf(key: Key): string {
  if (isNamed(key)) return keys[key]
  // Ctrl takes the two upper bits off a letter.
  return String.fromCharCode((key.toUpperCase().codePointAt('ctrl-'.length) ?? 0) & 0x1f)
}

function isNamed(key: Key): key is keyof typeof keys {
  return key in keys
}
