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

/** A dialog takes no keys before the keyboard has been quiet for a moment, and says so: then it is pressed again. */
export async function answer(chat: Terminal, key: string, until: string): Promise<void> {
  const isAsked = (): boolean => chat.screen().includes('1. Allow once')
  const wasAsked = isAsked()
  for (let tries = 0; tries < 20; tries++) {
    // It was taken, and its effect takes longer: another key would go to the composer.
    if (wasAsked && !isAsked()) {
      await chat.waitFor(until)
      return
    }
    chat.type(key)
    const isTaken = await chat.waitFor(until, { timeoutMs: 500 }).then(
      () => true,
      () => false,
    )
    if (isTaken) return
  }
  throw new Error(`The answer ${key} was not taken:\n${chat.screen()}`)
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
