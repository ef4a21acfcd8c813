import type { ChatLife } from './chat-life.ts'
import type { Remarks } from './remarks.ts'
import type { SessionActions } from './session-actions.ts'

export interface InterruptsOptions {
  now: () => number
  actions: SessionActions
  remarks: Remarks
  life: Pick<ChatLife, 'quit'>
}

/** What is left to the look of the chat. */
export type Interrupt = 'close_panel' | 'clear_composer' | 'nothing'

/** Twice within this time ends the chat. */
export const twiceMs = 2000
export const againQuits = 'Ctrl-C again quits.'

/** What Ctrl-C means. It always means something. */
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
      remarks.say('Stopped; everything so far is kept.')
      remarks.say(againQuits, { forMs: twiceMs })
      void actions.cancel()
    } else if (hasPanel) return 'close_panel'
    else if (!isComposerEmpty) return 'clear_composer'
    else remarks.say(againQuits, { forMs: twiceMs })
    return 'nothing'
  }
}
