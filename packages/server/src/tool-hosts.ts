/** Tool hosts: machines whose folders the sessions of a server work in. */
export { ToolHosts, type HostConnection, type ToolHostsOptions } from './tool-hosts/tool-hosts.ts'
