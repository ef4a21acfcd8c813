import type { ChatLife } from './chat-life.ts'
import type { Remarks } from './remarks.ts'
import type { SessionActions } from './session-actions.ts'

export interface InterruptsOptions {
  now: () => number
  actions: SessionActions
  remarks: Remarks
  life: Pick<ChatLife, 'quit'>
}

/** What depends on the kind of chat. */
export type Interrupt = 'close_panel' | 'clear_composer' | 'nothing'

/** Two presses within this time quit. */
export const twiceMs = 2000
export const againQuits = 'Press Ctrl-C again to quit.'

/** What Ctrl-C does in each state. */
export class Interrupts {
  readonly #options: InterruptsOptions
  #lastMs: number | undefined

  constructor(options: InterruptsOptions) {
    this.#options = options
  }

  press({ hasPanel, isComposerEmpty }: { hasPanel: boolean; isComposerEmpty: boolean }): Interrupt {
    const { now, actions, remarks, life } = this.#options
    const nowMs = now()
    const isSecond = this.#lastMs !== undefined && nowMs - this.#lastMs <= twiceMs
    this.#lastMs = nowMs
    if (isSecond) life.quit()
    else if (actions.isAtWork) {
      remarks.say('Stopped. Everything so far is kept.')
      remarks.say(againQuits, { forMs: twiceMs })
      void actions.cancel()
    } else if (hasPanel) return 'close_panel'
    else if (!isComposerEmpty) return 'clear_composer'
    else remarks.say(againQuits, { forMs: twiceMs })
    return 'nothing'
  }
}
