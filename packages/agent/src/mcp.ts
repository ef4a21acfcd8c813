/** Tools of MCP servers. */
export { defaultMcpLimits, type McpLimits } from './mcp/limits.ts'
export type { McpServerState } from './mcp/mcp-server.ts'
export { McpServers, type McpServersOptions } from './mcp/mcp-servers.ts'
export { describeChange, type Pin, type PinChange, type PinStore } from './mcp/pinned-tools.ts'
export { mcpServerSchema, type McpServerSettings } from './mcp/server-settings.ts'
export type { OAuthRecord, OAuthStore } from './mcp/sign-in.ts'
export { PinFile } from './settings/pin-file.ts'
export type { SignInOptions } from './mcp/sign-in.ts'
