/** A file that goes with a message. */
export type Attachment =
  /** Stored on the server; `id` is its digest. */
  { type: 'image'; name: string; id: string } | { type: 'text'; name: string; text: string }

/** In bytes. */
const maxText = 256 * 1024
const imageTypes = ['image/png', 'image/jpeg', 'image/gif', 'image/webp']

/** The file dialog offers these, and text of any name. */
export const acceptedFiles = [...imageTypes, 'text/*', '.md', '.json', '.log', '.csv', '.ts', '.js', '.py'].join()

/** Reads a file, or throws a sentence that says what works. */
export async function attach(file: File, storeImage: (image: Blob) => Promise<{ id: string }>): Promise<Attachment> {
  if (imageTypes.includes(file.type)) {
    const { id } = await storeImage(file)
    return { type: 'image', name: file.name, id }
  }
  const kinds = 'Attach images (PNG, JPEG, GIF, WebP) and text files up to 256 KB.'
  if (file.size > maxText) throw new Error(`${file.name} is too large. ${kinds}`)
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(await file.arrayBuffer())
    if (text.includes('\u0000')) throw new Error('It has null characters.')
    return { type: 'text', name: file.name, text }
  } catch (cause) {
    throw new Error(`${file.name} is neither text nor an image. ${kinds}`, { cause })
  }
}

/** A message with its text files: each is named, and its content is fenced. */
export function withFiles(message: string, attachments: readonly Attachment[]): string {
  const files = attachments.flatMap((each) => (each.type === 'text' ? [fenced(each)] : []))
  return [message, ...files].filter((part) => part !== '').join('\n\n')
}

function fenced({ name, text }: { name: string; text: string }): string {
  const longest = Math.max(2, ...(text.match(/`{3,}/g) ?? []).map(({ length }) => length))
  const fence = '`'.repeat(longest + 1)
  const [, extension = ''] = /\.([A-Za-z0-9]{1,10})$/.exec(name) ?? []
  return `File ${name.replaceAll(/\s+/g, ' ')}:\n${fence}${extension}\n${text.replace(/\n?$/, '\n')}${fence}`
}
