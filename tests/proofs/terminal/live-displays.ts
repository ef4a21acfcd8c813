import type { FakeContent } from '@tapetree/agent/testing'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { FakeHome } from '../../../packages/cli/src/testing/fake-home.ts'
import type { Terminal } from '../../terminal/terminal.ts'
import { recorded, streamed, type HostileCase, type HostileCases } from './hostile-case.ts'
import { leave, show, type Shown } from './show.ts'

/** What comes in while somebody looks: every sequence is cut between two pieces of the stream. */
export class LiveDisplays {
  readonly #home: FakeHome
  readonly #cases: HostileCases
  #expected = new Map<number, string>()

  constructor(home: FakeHome, cases: HostileCases) {
    this.#home = home
    this.#cases = cases
  }

  /** Reasoning and an answer that stream into the chat. */
  async answer(count: number): Promise<Shown> {
    const gate = `begin ${this.#cases.made.length}`
    const content: FakeContent[] = [
      { type: 'wait', gate },
      { type: 'reasoning', chunks: [...pieces(this.#take(count, 'reasoning, streamed')), 'THE LAST THOUGHT'] },
      { type: 'text', chunks: [...pieces(this.#take(count, 'model text, streamed')), 'THE END'] },
    ]
    this.#home.provider.script({ type: 'answer', content })
    return this.#chat('chat, streamed', async (terminal) => {
      send(terminal, 'Go')
      await terminal.waitFor('> Go')
      terminal.press('ctrl-o')
      this.#home.provider.release(gate)
      await terminal.waitFor((rows) =>
        ['THE END', 'THE LAST THOUGHT'].every((words) => rows.some((row) => row.includes(words))),
      )
    })
  }

  /** The same in print mode, to a terminal. */
  async print(count: number): Promise<Shown> {
    const chunks = pieces(this.#take(count, 'model text, printed'))
    this.#home.provider.script({ type: 'answer', content: [{ type: 'text', chunks }] })
    return show(this.#home, {
      name: 'run',
      args: ['run', 'Go'],
      expected: this.#takeExpected(),
      look: async (terminal) => void (await terminal.exit),
    })
  }

  /** A command that prints them, run by the user and shown as it comes. */
  async shell(count: number): Promise<Shown> {
    const lines = this.#take(count, '`!` output, live').map(recorded)
    await writeFile(join(this.#home.cwd, 'hostile.txt'), ['THE START', ...lines, 'THE END', ''].join('\n'))
    return this.#chat('chat, `!`', async (terminal) => {
      send(terminal, '!cat hostile.txt')
      await terminal.waitFor('THE END')
      // Only its last lines are shown before that.
      terminal.press('ctrl-o')
      await terminal.waitFor('THE START')
    })
  }

  /** A command that somebody has to allow: all of it is in the dialog. No command can have a NUL in it. */
  async permission(count: number): Promise<Shown> {
    const lines = this.#take(count, 'permission text').map((each) => `# ${recorded(each).replaceAll('\0', '\u0001')}`)
    const command = `${lines.join('\n')}\ntouch 'THE END'`
    const chunks = [JSON.stringify({ command })]
    this.#home.provider.script({ type: 'answer', content: [{ type: 'tool_call', id: 'call_1', name: 'bash', chunks }] })
    return this.#chat('permission dialog', async (terminal) => {
      send(terminal, 'Go')
      await terminal.waitFor('Allow bash?')
      await terminal.waitFor('THE END')
    })
  }

  /** Errors of the provider, in its own words. */
  async failure(count: number): Promise<Shown> {
    const cases = this.#take(count, 'error text of a provider')
    return this.#chat('chat, errors', async (terminal) => {
      for (const each of cases) {
        const message = `${recorded(each)} ERROR ${each.number}`
        this.#home.provider.script({ type: 'failure', error: 'invalid-request', message })
        send(terminal, 'Go')
        await terminal.waitFor(`ERROR ${each.number}`)
        await terminal.waitFor('Enter sends')
      }
    })
  }

  #take(count: number, source: string): HostileCase[] {
    const cases = this.#cases.take(count)
    for (const { number } of cases) this.#expected.set(number, source)
    return cases
  }

  #takeExpected(): Map<number, string> {
    const expected = this.#expected
    this.#expected = new Map()
    return expected
  }

  async #chat(name: string, look: (terminal: Terminal) => Promise<void>): Promise<Shown> {
    return show(this.#home, {
      name,
      args: [],
      expected: this.#takeExpected(),
      look: async (terminal) => {
        await terminal.waitFor('Enter sends')
        await look(terminal)
        await leave(terminal)
      },
    })
  }
}

/** Paragraphs, so that none is broken into two rows. */
function pieces(cases: readonly HostileCase[]): string[] {
  return cases.flatMap((each) => [...streamed(each), '\n\n'])
}

function send(terminal: Terminal, text: string): void {
  terminal.type(text)
  terminal.press('enter')
}
