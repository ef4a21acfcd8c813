import { PalettePanel, type PaletteEntry } from '../panels/palette-panel.ts'
import { slashTable } from '../chat/slash-table.ts'
import type { OpenerContext } from './panel-place.ts'

export interface PaletteContext extends OpenerContext {
  /** Runs a command as if the user had typed it. */
  onCommand: (text: string) => void
  /** Puts text into the composer. */
  onInsert: (text: string) => void
}

const listedSessions = 200

export async function openPalette(context: PaletteContext): Promise<void> {
  const { source, session, actions, appearance, folder, open, close, onChange, onCommand, onInsert } = context
  let searched = ''
  const then = (work: () => void) => (): void => {
    close()
    work()
  }
  const fileEntries = async (text: string): Promise<PaletteEntry[]> =>
    (await source.files(text)).map((path) => ({
      kind: 'file',
      name: path,
      take: then(() => onInsert(/\s/.test(path) ? `@"${path}" ` : `@${path} `)),
    }))
  const update = (kind: PaletteEntry['kind'], load: () => Promise<PaletteEntry[]>): Promise<unknown> =>
    actions.attempt(`Loading ${kind}s`, async () => {
      panel.update(kind, await load())
      onChange()
    })
  const panel = new PalettePanel({
    theme: appearance.theme,
    entries: commandEntries(),
    onSearch: (text) => {
      searched = text
      void fileEntries(text).then(
        (entries) => {
          // A slower answer to an older text.
          if (searched !== text) return
          panel.update('file', entries)
          onChange()
        },
        () => undefined,
      )
    },
    onClose: close,
  })
  open(panel)
  await Promise.all([
    update('session', async () =>
      (await source.list({ ...(folder !== undefined && { cwd: folder }), limit: listedSessions }))
        .filter(({ id }) => id !== session.handle?.sessionId)
        .map(({ id, name, firstText = '' }) => ({
          kind: 'session' as const,
          name: name || firstText || id,
          detail: id,
          take: then(() => void actions.open(id)),
        })),
    ),
    update('model', async () =>
      (await source.models())
        .filter(({ isUsable }) => isUsable)
        .map(({ reference, name, provider, modelId }) => ({
          kind: 'model' as const,
          name: reference,
          detail: name,
          take: then(() => void actions.set({ model: { provider, modelId } })),
        })),
    ),
    update('file', () => fileEntries(searched)),
  ])

  function commandEntries(): PaletteEntry[] {
    const own = slashTable.map((row): PaletteEntry => {
      const needsWords = 'argument' in row && row.argument.startsWith('<')
      return {
        kind: 'command',
        name: row.name,
        detail: row.says,
        take: then(() => (needsWords ? onInsert(`/${row.name} `) : onCommand(`/${row.name}`))),
      }
    })
    const others = session.handle?.state('commands') ?? []
    return [
      ...own,
      ...others.map(({ name, description }): PaletteEntry => ({
        kind: 'command',
        name,
        detail: description,
        take: then(() => onInsert(`/${name} `)),
      })),
    ]
  }
}
