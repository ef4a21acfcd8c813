import type { PlaybackEvent } from '@tapetree/session'
import { stylesFor, type Styles } from '../command-line/colour.ts'
import { fitText } from '../text/display-width.ts'
import { write, type Io } from '../command-line/io.ts'
import { speedText } from './play-keys.ts'
import { clockOf, eventText } from './play-text.ts'
import type { PlaybackState } from './playback.ts'

const eraseLine = '\r\u001b[K'
const defaultColumns = 80

/** Events as lines, and under them one that says where playback stands. */
export class PlayScreen {
  readonly #io: Io
  readonly #styles: Styles
  #status = ''

  constructor(io: Io) {
    this.#io = io
    this.#styles = stylesFor(io.stdout, io.env)
  }

  async show(event: PlaybackEvent): Promise<void> {
    await write(this.#io.stdout, `${eraseLine}${eventText(event, this.#styles)}${this.#status}`)
  }

  status({ position, length, speed, isPaused, next }: PlaybackState): void {
    const { columns = defaultColumns } = this.#io.stdout
    const at = next ? ` · ${clockOf(next.timestamp)}` : ''
    const text = `${isPaused ? '❚❚' : '▶'} ${position}/${length}${at} · ${speedText(speed)} · space . ← → + - q`
    this.#status = this.#styles.dim(fitText(text, columns - 1))
    this.#io.stdout.write(`${eraseLine}${this.#status}`)
  }

  close(): void {
    this.#io.stdout.write(eraseLine)
  }
}
