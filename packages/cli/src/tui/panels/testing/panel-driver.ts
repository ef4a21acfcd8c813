import type { Component } from '@earendil-works/pi-tui'
import { themeFor } from '../../theme.ts'

export const plainTheme = themeFor({ theme: 'dark', color: false })
export const darkTheme = themeFor({ theme: 'dark', color: true })

const sequences: Record<string, string> = {
  enter: '\r',
  escape: '\u001b',
  tab: '\t',
  up: '\u001b[A',
  down: '\u001b[B',
  right: '\u001b[C',
  left: '\u001b[D',
  home: '\u001b[H',
  end: '\u001b[F',
  pageUp: '\u001b[5~',
  pageDown: '\u001b[6~',
  backspace: '\u007f',
  'shift+up': '\u001b[1;2A',
  'shift+down': '\u001b[1;2B',
  'shift+enter': '\u001b[13;2u',
  'ctrl+b': '\u0002',
  'ctrl+k': '\u000b',
  'ctrl+n': '\u000e',
  'ctrl+w': '\u0017',
  'ctrl+x': '\u0018',
}

/** Keys by name; any other text is typed letter by letter. */
export function press(panel: Pick<Component, 'handleInput'>, ...keys: string[]): void {
  for (const key of keys) {
    const sequence = sequences[key]
    for (const data of sequence === undefined ? key : [sequence]) panel.handleInput?.(data)
  }
}

/** The panel at 80 and at 40 columns. */
export function golden(panel: Component): string {
  return [80, 40].map((width) => `${panel.render(width).join('\n')}\n`).join('\n')
}
