import type { Writable } from 'node:stream'
import { AgentTurn } from '../../../packages/server/src/acp/agent-turn.ts'
import { AgentConnection } from '../../../packages/server/src/acp/agent-connection.ts'
import { OwnProcess } from '../../../packages/agent/src/tools/commands/own-process.ts'
import { OpenForeignRun } from '../../../packages/agent/src/run/foreign-run.ts'
import { replaceMember, type Mutant } from '../mutants/catch-mutant.ts'

/** Faults that this proof must find: each adds one and returns a function that removes it. */
export const mutants: Record<string, Mutant> = {
  'the gate is not asked': () =>
    replaceMember(OpenForeignRun.prototype, 'admit', () => () => Promise.resolve({ type: 'allowed' })),

  'a call is allowed before its start is in the log': () =>
    replaceMember(OpenForeignRun.prototype, 'startCall', (start) => {
      return function (this: OpenForeignRun, ...call) {
        setTimeout(() => void start.call(this, ...call).catch(() => undefined), 20)
        return Promise.resolve()
      }
    }),

  'a result is written twice': () =>
    replaceMember(OpenForeignRun.prototype, 'answerCall', (answer) => {
      return async function (this: OpenForeignRun, ...call) {
        await answer.call(this, ...call)
        await answer.call(this, ...call)
      }
    }),

  'calls of a dead agent stay open': () =>
    replaceMember(OpenForeignRun.prototype, 'answerCall', (answer) => {
      return function (this: OpenForeignRun, call, output, access) {
        const isUnknown = typeof output.content === 'string' && output.content.startsWith('Outcome unknown')
        return isUnknown ? Promise.resolve() : answer.call(this, call, output, access)
      }
    }),

  'late updates are kept for the next turn': () => {
    const late: unknown[] = []
    const restore = [
      replaceMember(AgentConnection, 'start', (start) => {
        return (options) => start.call(AgentConnection, { ...options, onUpdate: (update) => late.push(update) })
      }),
      replaceMember(AgentTurn.prototype, 'play', (play) => {
        return function (this: AgentTurn, prompt) {
          for (const update of late.splice(0)) this.update(update)
          return play.call(this, prompt)
        }
      }),
    ]
    return () => restore.forEach((mend) => mend())
  },

  'an update is lost now and then': () => {
    let updates = 0
    return replaceMember(AgentTurn.prototype, 'update', (update) => {
      return function (this: AgentTurn, given) {
        if (++updates % 9 > 0) update.call(this, given)
      }
    })
  },

  'what an agent says after it closed its stdin is dropped': () => {
    const stdin = Object.getOwnPropertyDescriptor(OwnProcess.prototype, 'stdin') as PropertyDescriptor
    const get = function (this: OwnProcess): Writable {
      const own = stdin.get?.call(this) as Writable
      return own.once('error', () => this.stdout.destroy())
    }
    Object.defineProperty(OwnProcess.prototype, 'stdin', { ...stdin, get })
    return () => Object.defineProperty(OwnProcess.prototype, 'stdin', stdin)
  },

  'updates are taken out of order': () => {
    let updates = 0
    return replaceMember(AgentTurn.prototype, 'update', (update) => {
      return function (this: AgentTurn, given) {
        if (++updates % 9 > 0) update.call(this, given)
        else setImmediate(() => update.call(this, given))
      }
    })
  },

  'a prompt is sent twice': () =>
    replaceMember(AgentConnection.prototype, 'prompt', (prompt) => {
      return function (this: AgentConnection, ...given) {
        void prompt.call(this, ...given).catch(() => undefined)
        return prompt.call(this, ...given)
      }
    }),

  'a cancel does not reach the agent': () => replaceMember(AgentConnection.prototype, 'cancel', () => () => undefined),

  'a text in flight is shown as another': () =>
    replaceMember(OpenForeignRun.prototype, 'say', (say) => {
      return function (this: OpenForeignRun, kind, text) {
        return say.call(this, kind, text.toUpperCase().replaceAll('<', '«'))
      }
    }),
}
