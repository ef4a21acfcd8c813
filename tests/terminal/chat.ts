import { setTimeout } from 'node:timers/promises'
import { expect, onTestFinished } from 'vitest'
import { fakeHome, type FakeHome, type FakeHomeOptions } from '../../packages/cli/src/testing/fake-home.ts'
import { startTerminal, type Terminal, type TerminalOptions } from './terminal.ts'

/** A home that goes when the test ends. */
export async function testHome(options?: FakeHomeOptions): Promise<FakeHome> {
  const home = await fakeHome(options)
  onTestFinished(() => home[Symbol.asyncDispose]())
  return home
}

/** The chat, ready to be typed into. It is ended with the test. */
export async function openChat(options: TerminalOptions & { until?: string | RegExp }): Promise<Terminal> {
  const terminal = startTerminal(options)
  onTestFinished(() => terminal[Symbol.asyncDispose]())
  if (options.until === undefined) {
    await terminal.waitFor('Enter sends')
    // The screen stands before the session does.
    await terminal.waitFor('model-1')
  } else await terminal.waitFor(options.until)
  return terminal
}

export function send(terminal: Terminal, text: string): void {
  terminal.type(text)
  terminal.press('enter')
}

/** A dialog takes no keys before the keyboard has been quiet for 300 ms since it was drawn. It is in sight, so it was drawn before. */
const quietMs = 350

/**
 * Answers a dialog that is in sight, by one key. It is not pressed a second time: if the first is only slow to take effect, the second would
 * answer the next dialog, or go to the composer.
 */
export async function answer(chat: Terminal, key: string, until: string): Promise<void> {
  await setTimeout(quietMs)
  chat.type(key)
  await chat.waitFor(until)
}

/** Holds the screen against `golden/<name>.txt`. What is different in every run is told by its kind, or left out. */
export async function expectScreen(terminal: Terminal, name: string, home: FakeHome): Promise<void> {
  const screen = terminal
    .screen()
    .replaceAll(home.cwd, '<folder>'.padEnd(home.cwd.length, '.'))
    // The names of days have different lengths, so a frame after them moves.
    .replaceAll(
      /([A-Z][a-z]+day, \d{4}-\d\d-\d\d)([^│\n]*?)( *│)/g,
      (_, date: string, rest: string, end: string) => `<date>${rest}${' '.repeat(date.length - '<date>'.length)}${end}`,
    )
    .replaceAll(/[A-Z][a-z]+day, \d{4}-\d\d-\d\d/g, '<date>')
    // A new tool does not change a screen.
    .replaceAll(/\d+(?= tools\b)/g, (digits) => '#'.repeat(digits.length))
    .replaceAll(/(?<=– Worked )\d+ s\b/g, '<time>')
    // Only what has taken more than a second says how long.
    .replaceAll(/ · \d+ s\b/g, '')
    // What was used is told a moment after the answer.
    .replaceAll(/ · \d+% of context| · \d+ tokens| · < \$0\.01/g, '')
  await expect(screen).toMatchFileSnapshot(`golden/${name}.txt`)
}
