export { PluginSetupError } from '../common/errors/plugin-setup-error.js';
