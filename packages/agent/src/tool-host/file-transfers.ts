import { FilesRefused, maxAllBytes, type HostFiles } from './host-files.ts'
import { hostTexts, send, type HostLink } from './hosted-call.ts'
import { maxPacks, type HostRequest } from './messages.ts'

type FileRequest = Extract<HostRequest, { type: 'files' | 'part' | 'recreate' | 'data' }>

/** Files on their way to the service or from there. Each side asks for the next part, so that neither floods the other. */
type Transfer =
  | { type: 'out'; pack: Buffer }
  | { type: 'in'; workspace: HostFiles; tree: string; sizes: readonly number[]; parts: Buffer[]; received: number }

const partBytes = 4 * 1024 * 1024
/** Of one connection. */
const maxTransfers = 4

export class FileTransfers {
  readonly #workspaces: ReadonlyMap<string, HostFiles>
  readonly #sharesFiles: boolean
  readonly #byLink = new Map<HostLink, Map<string, Transfer>>()
  /** The packs that are being made, of all connections. */
  #taking = 0

  /** `sharesFiles`: whether files may leave this host. */
  constructor(workspaces: ReadonlyMap<string, HostFiles>, { sharesFiles }: { sharesFiles: boolean }) {
    this.#workspaces = workspaces
    this.#sharesFiles = sharesFiles
  }

  take(request: FileRequest, link: HostLink): void {
    const { id } = request
    const transfers = this.#byLink.get(link) ?? new Map<string, Transfer>()
    this.#byLink.set(link, transfers)
    this.#answer(request, { link, transfers }).catch((error: unknown) => {
      transfers.delete(id)
      send(link, {
        type: 'refused',
        id,
        reason: error instanceof FilesRefused ? error.message : hostTexts.failed(error),
      })
    })
  }

  /** Gives up what is under way. The service begins again. */
  leave(link: HostLink): void {
    this.#byLink.delete(link)
  }

  async #answer(
    request: FileRequest,
    { link, transfers }: { link: HostLink; transfers: Map<string, Transfer> },
  ): Promise<void> {
    const { id } = request
    const transfer = transfers.get(id)
    switch (request.type) {
      case 'files': {
        if (!this.#sharesFiles) throw new FilesRefused('This tool host does not share its files.')
        if (transfers.size + this.#taking >= maxTransfers) throw new FilesRefused(hostTexts.busy)
        const workspace = this.#filesOf(request.workspace)
        this.#taking++
        const { pack, ...taken } = await workspace.take(request.base).finally(() => this.#taking--)
        if (pack.length > 0) transfers.set(id, { type: 'out', pack })
        return send(link, { type: 'files', id, size: pack.length, ...taken })
      }
      case 'part': {
        if (transfer?.type !== 'out') return
        const { off } = request
        const data = transfer.pack.subarray(off, off + partBytes)
        if (off + data.length >= transfer.pack.length) transfers.delete(id)
        return send(link, { type: 'data', id, off, data: data.toString('base64') })
      }
      case 'recreate': {
        const { tree, packs: sizes } = request
        if (transfers.size >= maxTransfers) throw new FilesRefused(hostTexts.busy)
        const workspace = this.#filesOf(request.workspace)
        if (sizes.length > maxPacks || total(sizes) > maxAllBytes) throw new FilesRefused(hostTexts.tooManyFiles)
        transfers.set(id, { type: 'in', workspace, tree, sizes, parts: [], received: 0 })
        return send(link, { type: 'part', id, off: 0 })
      }
      case 'data': {
        if (transfer?.type !== 'in' || request.off !== transfer.received) return
        const data = Buffer.from(request.data, 'base64')
        transfer.parts.push(data)
        transfer.received += data.length
        const wanted = total(transfer.sizes)
        if (data.length === 0 || transfer.received > wanted) throw new FilesRefused('The files came in wrong parts.')
        if (transfer.received < wanted) return send(link, { type: 'part', id, off: transfer.received })
        const packs = split(Buffer.concat(transfer.parts), transfer.sizes)
        transfer.parts = []
        const recreated = await transfer.workspace.recreate(transfer.tree, packs)
        transfers.delete(id)
        return send(link, { type: 'recreated', id, ...recreated })
      }
      default:
        request satisfies never
    }
  }

  #filesOf(name: string): HostFiles {
    const found = this.#workspaces.get(name)
    if (!found) throw new FilesRefused(hostTexts.noWorkspace(name))
    return found
  }
}

function total(sizes: readonly number[]): number {
  return sizes.reduce((sum, size) => sum + size, 0)
}

function split(bytes: Buffer, sizes: readonly number[]): Buffer[] {
  let at = 0
  return sizes.map((size) => bytes.subarray(at, (at += size)))
}
