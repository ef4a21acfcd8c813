import type { Input, Io } from '../command-line/io.ts'

/** More does not fit into the context of any model. */
const maxBytes = 10 * 1024 * 1024
/** After this long without a byte it is said what is waited for. */
const patienceMs = 3000

interface StdinOptions {
  signal: AbortSignal
  onTooLong: () => never
  onWaiting: () => void
}

/** All that is piped in; nothing where a person sits before it. */
export async function readStdin(stdin: Io['stdin'], { signal, onTooLong, onWaiting }: StdinOptions): Promise<string> {
  if (stdin.isTTY) return ''
  const chunks: Buffer[] = []
  let bytes = 0
  const timer = setTimeout(onWaiting, patienceMs)
  const stop = (): void => void stdin.destroy(new DOMException('Interrupted.', 'AbortError'))
  signal.addEventListener('abort', stop, { once: true })
  try {
    signal.throwIfAborted()
    for await (const chunk of stdin as Input & AsyncIterable<Buffer | string>) {
      clearTimeout(timer)
      const read = Buffer.from(chunk as Buffer)
      bytes += read.length
      if (bytes > maxBytes) onTooLong()
      chunks.push(read)
    }
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', stop)
  }
  return Buffer.concat(chunks).toString('utf8')
}
