import { execFile } from 'node:child_process'
import { promisify } from 'node:util'

export interface Image {
  bytes: Uint8Array
  mediaType: string
}

export interface ClipboardOptions {
  env: NodeJS.ProcessEnv
  platform?: NodeJS.Platform
  maxBytes: number
}

const run = promisify(execFile)
const timeoutMs = 5000

/** The image in the clipboard of this machine; undefined if there is none. Fails if no program can read the clipboard. */
export async function clipboardImage(options: ClipboardOptions): Promise<Image | undefined> {
  const { env, platform = process.platform } = options
  const readers = platform === 'darwin' ? [pngpaste, osascript] : [...waylandOf(env), ...x11Of(env)]
  if (readers.length === 0) {
    throw new Error(
      'There is no graphical session here, so there is no clipboard with images. Name a file with @ instead.',
    )
  }
  for (const { read } of readers) {
    try {
      return await read(options)
    } catch (error) {
      if (codeOf(error) !== 'ENOENT') throw error
    }
  }
  const names = readers.map(({ name }) => name).join(' or ')
  throw new Error(`To paste images, install ${names}. You can also name a file with @.`)
}

interface Reader {
  /** The program; absent from the machine: `read` fails with `ENOENT`. */
  name: string
  read: (options: ClipboardOptions) => Promise<Image | undefined>
}

function waylandOf(env: NodeJS.ProcessEnv): Reader[] {
  return env['WAYLAND_DISPLAY'] ? [{ name: 'wl-clipboard', read: withTypes('wl-paste', wlPaste) }] : []
}

function x11Of(env: NodeJS.ProcessEnv): Reader[] {
  return env['DISPLAY'] ? [{ name: 'xclip', read: withTypes('xclip', xclip) }] : []
}

const preferred = ['image/png', 'image/jpeg', 'image/webp', 'image/gif']

const wlPaste = { list: ['--list-types'], get: (type: string): string[] => ['--no-newline', '--type', type] }
const xclip = {
  list: ['-selection', 'clipboard', '-target', 'TARGETS', '-out'],
  get: (type: string): string[] => ['-selection', 'clipboard', '-target', type, '-out'],
}

/** The formats in the clipboard are listed first. Without any, the programs fail. */
function withTypes(
  program: string,
  { list, get }: { list: readonly string[]; get: (type: string) => readonly string[] },
): Reader['read'] {
  return async (options) => {
    const listed = await output(program, list, options).catch((error: unknown) => {
      if (typeof codeOf(error) === 'number') return Buffer.alloc(0)
      throw error
    })
    const offered = new Set(listed.toString('utf8').split(/\s+/))
    const mediaType = preferred.find((type) => offered.has(type))
    if (mediaType === undefined) return undefined
    return imageOf(await output(program, get(mediaType), options), mediaType)
  }
}

const pngpaste: Reader = {
  name: 'pngpaste',
  // It fails if there is no image.
  read: async (options) => {
    const bytes = await output('pngpaste', ['-'], options).catch((error: unknown) => {
      if (typeof codeOf(error) === 'number') return Buffer.alloc(0)
      throw error
    })
    return imageOf(bytes, 'image/png')
  },
}

/** Prints `«data PNGf89504E47…»`. */
const osascript: Reader = {
  name: 'osascript',
  read: async (options) => {
    const script = 'the clipboard as «class PNGf»'
    // Hexadecimal digits take twice the space.
    const most = { ...options, maxBytes: options.maxBytes * 2 + 100 }
    const said = await output('osascript', ['-e', script], most).catch((error: unknown) => {
      if (typeof codeOf(error) === 'number') return Buffer.alloc(0)
      throw error
    })
    const [, digits = ''] = /PNGf([0-9A-F]+)/i.exec(said.toString('utf8')) ?? []
    return imageOf(Buffer.from(digits, 'hex'), 'image/png')
  },
}

function imageOf(bytes: Buffer, mediaType: string): Image | undefined {
  return bytes.length === 0 ? undefined : { bytes, mediaType }
}

async function output(program: string, args: readonly string[], { env, maxBytes }: ClipboardOptions): Promise<Buffer> {
  try {
    const { stdout } = await run(program, [...args], {
      env,
      timeout: timeoutMs,
      maxBuffer: maxBytes,
      encoding: 'buffer',
    })
    return stdout
  } catch (error) {
    if (codeOf(error) !== 'ERR_CHILD_PROCESS_STDIO_MAXBUFFER') throw error
    throw new Error(`The image in the clipboard is too large; the limit for images is ${maxBytes} bytes.`, {
      cause: error,
    })
  }
}

/** The exit code of a program, or the code of an error of the system. */
function codeOf(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : undefined
}
