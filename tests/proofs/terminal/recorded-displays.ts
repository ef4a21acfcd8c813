import { text } from '@tapetree/session'
import { openFileStore } from '@tapetree/session/stores/file'
import type { FakeHome } from '../../../packages/cli/src/testing/fake-home.ts'
import { sessionsFolder } from '../../peers/session-files.ts'
import { recorded, type HostileCases } from './hostile-case.ts'
import { conversationSources, labelSource, putCases, queueSource, type RecordedSource } from './recorded-sources.ts'
import { leave, show, type Shown } from './show.ts'

/** Sessions with hostile words in them, and the screens of the command that show them. */
export class RecordedDisplays {
  readonly #home: FakeHome
  readonly #cases: HostileCases

  constructor(home: FakeHome, cases: HostileCases) {
    this.#home = home
    this.#cases = cases
  }

  /** A conversation in the chat, everything unfolded. */
  async chat(rounds: number): Promise<Shown> {
    const { id, expected } = await this.#session(conversationSources, rounds)
    return show(this.#home, {
      name: 'chat',
      args: ['--session', id],
      expected,
      look: async (terminal) => {
        await terminal.waitFor('THE END')
        terminal.press('ctrl-o')
        await terminal.waitFor('THE LAST THOUGHT')
        // What is older is fetched when its place comes into view.
        await terminal.waitFor(`B${Math.min(...expected.keys())}b`)
        await leave(terminal)
      },
    })
  }

  async queue(rounds: number): Promise<Shown> {
    const { id, expected } = await this.#session(queueSource, rounds)
    return show(this.#home, {
      name: 'queue panel',
      args: ['--session', id],
      expected,
      look: async (terminal) => {
        await terminal.waitFor('THE END')
        terminal.press('ctrl-q')
        await terminal.waitFor(`${rounds}. `)
        await leave(terminal)
      },
    })
  }

  /** The tree with its labels, in the chat. */
  async treePanel(rounds: number): Promise<Shown> {
    const { id, expected } = await this.#session(labelSource, rounds)
    return show(this.#home, {
      name: 'tree panel',
      args: ['--session', id],
      expected,
      look: async (terminal) => {
        await terminal.waitFor('THE END')
        terminal.press('ctrl-t')
        await terminal.waitFor('Enter go there')
        await leave(terminal)
      },
    })
  }

  /** The same as a command prints it. */
  async tree(rounds: number): Promise<Shown> {
    const { id, expected } = await this.#session(labelSource, rounds)
    return show(this.#home, {
      name: 'sessions show --tree',
      args: ['sessions', 'show', id, '--tree'],
      expected,
      look: async (terminal) => void (await terminal.exit),
    })
  }

  async play(rounds: number): Promise<Shown> {
    const { notice: _notPlayed, ...played } = conversationSources
    const { id, expected } = await this.#session(played, rounds)
    return show(this.#home, {
      name: 'play',
      args: ['play', id, '--speed', 'max'],
      expected,
      look: async (terminal) => {
        await terminal.waitFor('THE END')
        terminal.type('q')
        await terminal.exit
      },
    })
  }

  /** Sessions with names, as a list. */
  async list(count: number): Promise<Shown> {
    const expected = new Map<number, string>()
    const store = openFileStore({ folder: sessionsFolder(this.#home) })
    for (const hostile of this.#cases.take(count)) {
      const session = await store.create({ cwd: this.#home.cwd })
      await session.appendSessionInfo(recorded(hostile))
      await session.close()
      expected.set(hostile.number, 'session title')
    }
    await store.close()
    return show(this.#home, {
      name: 'sessions list',
      args: ['sessions', 'list', '--limit', String(count + 10)],
      expected,
      look: async (terminal) => void (await terminal.exit),
    })
  }

  async #session(
    sources: Record<string, RecordedSource>,
    rounds: number,
  ): Promise<{ id: string; expected: Map<number, string> }> {
    const store = openFileStore({ folder: sessionsFolder(this.#home) })
    const session = await store.create({ cwd: this.#home.cwd })
    const expected = await putCases(session, { sources, cases: this.#cases, rounds })
    await session.appendMessage('assistant', [
      { type: 'reasoning', reasoning: { text: 'THE LAST THOUGHT' } },
      text('THE END'),
    ])
    const { id } = session
    await session.close()
    await store.close()
    return { id, expected }
  }
}
