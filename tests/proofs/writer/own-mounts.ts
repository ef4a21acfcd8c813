import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import type { FigureContext, FigureResult } from '../../../scripts/figure/figure.ts'
import { randomFrom } from '../../../scripts/figure/random.ts'

export interface InsideContext extends Omit<FigureContext, 'temporaryFolder'> {
  /** An empty folder to mount below. */
  folder: string
}

export interface OwnMountsOptions {
  /** Whatever the program started ends with it, also daemons that have left its process group. */
  ownProcesses?: boolean
  /** It has network interfaces of its own, and reaches nobody else. */
  ownNetwork?: boolean
}

/**
 * Runs a program in a mount namespace of its own: what it mounts is seen by nobody else and is gone when it ends, however it
 * ends, and the loop devices with it. Where that is not possible, the figure fails and says why.
 */
export async function runInOwnMounts(
  context: FigureContext,
  program: URL,
  { ownProcesses = false, ownNetwork = false }: OwnMountsOptions = {},
): Promise<FigureResult> {
  const { size, seed, say } = context
  const folder = await context.temporaryFolder()
  const options = JSON.stringify({ size, seed, folder })
  // Without root, a user namespace gives enough rights for a tmpfs, though not for a loop device.
  const asRoot = process.getuid?.() === 0 ? [] : ['--user', '--map-root-user']
  const node = [process.execPath, '-C', '@tapetree/source', fileURLToPath(program), options]
  // The shell is the first process there: it reaps daemons that end, and all others end with it.
  const own = ownProcesses ? ['--pid', '--fork', '--kill-child', '--mount-proc', 'sh', '-c', '"$@"; exit $?', 'sh'] : []
  const network = ownNetwork ? ['--net'] : []
  const child = spawn('unshare', [...asRoot, ...network, '--mount', '--propagation', 'private', ...own, ...node], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const ended = new Promise<string>((resolve) => {
    child.on('error', (error) => resolve(error.message))
    child.on('close', (code, signal) => resolve(`the program ended with ${signal ?? code}`))
  })
  let result: FigureResult | undefined
  let rest = ''
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    const lines = (rest + chunk).split('\n')
    rest = lines.pop() as string
    for (const line of lines) {
      if (line.startsWith(resultMark)) result = JSON.parse(line.slice(resultMark.length)) as FigureResult
      else say(line)
    }
  })
  const reason = await ended
  if (result) return result
  say(`NOT PROVED: ${reason}. This needs Linux and the right to mount (root).`)
  return { ok: false, figures: { reason } }
}

/** The other side: what the program calls. */
export async function runInside(run: (context: InsideContext) => Promise<FigureResult>): Promise<void> {
  process.stdin.on('end', () => process.exit(1)).resume() // whoever started us is gone
  const { size, seed, folder } = JSON.parse(process.argv[2] ?? '{}') as Pick<InsideContext, 'size' | 'seed' | 'folder'>
  const say = (line: string): void => console.log(line)
  const result = await run({ size, seed, folder, random: randomFrom(seed), say })
  process.stdout.write(`${resultMark}${JSON.stringify(result)}\n`, () => process.exit(0))
}

const resultMark = '\u0001result '
