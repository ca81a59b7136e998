export { type ConfigPath, formatPath, shownKey } from '../../common/text/config-path.js';
