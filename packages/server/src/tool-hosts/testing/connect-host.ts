import type { ToolHost } from '@tapetree/agent/tool-host'
import type { HostConnection, ToolHosts } from '../tool-hosts.ts'

/** Connects a host in this process to a server. The returned function cuts the connection. */
export function connectHost(host: ToolHost, hosts: ToolHosts, tenant = 'default'): () => void {
  const link = { send: (text: string) => queueMicrotask(() => take(text)) }
  const connection: HostConnection = {
    send: (text) => queueMicrotask(() => host.take(text, link)),
    close: () => host.leave(link),
  }
  const { take, end } = hosts.accept(tenant, connection)
  host.join(link)
  return () => {
    host.leave(link)
    end()
  }
}
