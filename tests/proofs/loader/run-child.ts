import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

/**
 * Runs a program of this folder and hands over each line that it prints. Says in a sentence how it failed: it crashed, or it
 * said nothing for so long that it must be hanging.
 */
export async function runChild(options: {
  program: string
  args: readonly string[]
  silenceMs: number
  onLine: (line: string) => void
}): Promise<string | undefined> {
  const path = fileURLToPath(new URL(options.program, import.meta.url))
  const child = spawn(process.execPath, ['-C', '@tapetree/source', path, ...options.args], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let isSilent = false
  const watch = setTimeout(() => {
    isSilent = true
    child.kill('SIGKILL')
  }, options.silenceMs)
  const errors: string[] = []
  child.stderr.setEncoding('utf8').on('data', (text: string) => errors.push(text))
  const closed = new Promise<number | string>((resolve) => {
    child.on('close', (code, signal) => resolve(code ?? signal ?? 'unknown'))
  })
  for await (const line of createInterface({ input: child.stdout })) {
    watch.refresh()
    options.onLine(line)
  }
  const outcome = await closed
  clearTimeout(watch)
  if (isSilent) return `hangs: nothing was heard of it for ${options.silenceMs} ms`
  return outcome === 0 ? undefined : `crashed (${outcome}): ${errors.join('').slice(-2000)}`
}
