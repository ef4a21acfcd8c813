/** Tool hosts: machines whose folders the sessions of a server work in. */
export { ToolHosts, type HostConnection, type ToolHostsOptions, type WorkspaceSource } from './tool-hosts/tool-hosts.ts'
