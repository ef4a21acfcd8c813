import type { Terminal as Emulator } from '@xterm/headless'
import { ownTitle } from './own-codes.ts'

/** What a terminal would have done for somebody: nothing of it may ever happen. */
export interface EmulatorWatch {
  readonly done: readonly string[]
  /** Answers to questions. The app asks a few itself when it starts. */
  readonly replies: readonly string[]
}

const oscNumbers = [0, 1, 2, 4, 7, 9, 10, 12, 50, 52, 104, 133, 777, 1337, 5522]

const own = new RegExp(`^${ownTitle}$`, 'u')

/** The app sets a title of its own. */
function isOwn(title: string): boolean {
  return own.test(title)
}

export function watch(emulator: Emulator): EmulatorWatch {
  const done: string[] = []
  const replies: string[] = []
  emulator.onTitleChange((title) => {
    if (!isOwn(title)) done.push(`the title was set to ${JSON.stringify(title)}`)
  })
  emulator.onBell(() => done.push('the bell rang'))
  emulator.onData((reply) => replies.push(reply))
  for (const number of oscNumbers) {
    emulator.parser.registerOscHandler(number, (data) => {
      if (number !== 0 || !isOwn(data)) done.push(`OSC ${number} ${JSON.stringify(data)}`)
      return false
    })
  }
  emulator.parser.registerOscHandler(8, (data) => {
    if (data !== ';') done.push(`a link was made: ${JSON.stringify(data)}`)
    return false
  })
  for (const final of ['q', '|', 'p']) {
    emulator.parser.registerDcsHandler({ final }, () => {
      done.push(`DCS ${final}`)
      return false
    })
  }
  for (const final of ['c', '7', '8', 'D', 'M', 'E', 'H']) {
    emulator.parser.registerEscHandler({ final }, () => {
      done.push(`ESC ${final}`)
      return false
    })
  }
  return { done, replies }
}
